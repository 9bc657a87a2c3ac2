# Installs the program, the libraries, the headers and a package configuration, so that another project
# writes find_package(collar) and links collar::collar.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

get_property(floors GLOBAL PROPERTY COLLAR_FLOORS)
add_library(collar_all INTERFACE)
add_library(collar::collar ALIAS collar_all)
set_target_properties(collar_all PROPERTIES EXPORT_NAME collar)
target_link_libraries(collar_all INTERFACE ${floors})

install(TARGETS ${floors} collar_all EXPORT collar_targets)
install(TARGETS collar_program)
foreach(floor kernels engine nn data comm apps/accelerate)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${floor}/ DESTINATION include/collar/${floor}
          FILES_MATCHING PATTERN "*.hpp")
endforeach()
install(EXPORT collar_targets NAMESPACE collar:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/collar)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/collar-config.cmake.in
  ${CMAKE_BINARY_DIR}/collar-config.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/collar)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/collar-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/collar-config.cmake ${CMAKE_BINARY_DIR}/collar-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/collar)
