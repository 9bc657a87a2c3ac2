// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>

#include "data/dataset/image_files.hpp"
#include "data/dataset/open_folder.hpp"
#include "kernels/core/error.hpp"
#include "tests/support/golden.hpp"

using namespace collar;
using Catch::Contains;
namespace fs = std::filesystem;

namespace {

/// A folder with these files; what is in them does not matter here.
class Folder {
 public:
  explicit Folder(const std::vector<std::string>& files) {
    for (const std::string& file : files) add(file);
  }
  void add(const std::string& file) {
    fs::create_directories((path() / file).parent_path());
    std::ofstream(path() / file) << "x";
  }
  const fs::path& path() const { return directory_.path(); }

 private:
  test::TemporaryDirectory directory_;
};

std::vector<std::string> relative_paths(const data::LabelledFiles& files) {
  std::vector<std::string> result;
  for (const auto& file : files.files) result.push_back(file.path.lexically_relative(files.root));
  return result;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("Class folders are read by torchvision's rules") {
  const Folder folder({"cat/b.jpg", "cat/a.JPEG", "cat/notes.txt", "cat/sub/z.png",
                       "cat/sub-2/y.bmp", "Zebra/1.webp", "README.md"});
  const data::LabelledFiles files = data::scan_class_folders(folder.path());
  CHECK(files.classes == Names{"Zebra", "cat"});  // byte order
  // Folders sort as texts, and "-" comes before "/" as in Python.
  CHECK(relative_paths(files) ==
        Names{"Zebra/1.webp", "cat/a.JPEG", "cat/b.jpg", "cat/sub/z.png", "cat/sub-2/y.bmp"});
  CHECK(files.files[0].label == 0);
  CHECK(files.files[4].label == 1);
}

TEST_CASE("The pets are found as torchvision finds them") {
  REQUIRE_SHARED(pets, "data/pets");
  const data::ImageFolder images(pets / "train");
  CHECK(images.size() == 296);
  CHECK(images.classes().size() == 37);
  CHECK(images.classes().front() == "Abyssinian");
  CHECK(images.classes().back() == "yorkshire_terrier");
  CHECK(images.load(0).size() == data::ImageSize{450, 313});
}

TEST_CASE("Hidden files and folders are passed over and counted") {
  const Folder folder({"cat/1.jpg", "cat/._1.jpg", ".ipynb_checkpoints/1.jpg", "cat/.x/2.jpg"});
  const data::LabelledFiles files = data::scan_class_folders(folder.path());
  CHECK(files.classes == Names{"cat"});
  CHECK(files.files.size() == 1);
  CHECK(files.hidden == 3);
}

TEST_CASE("Symbolic links are followed, but not in a circle") {
  const Folder folder({"cat/1.jpg", "store/2.jpg"});
  const Folder elsewhere({"3.jpg"});
  fs::create_directory_symlink(elsewhere.path(), folder.path() / "dog");
  fs::create_directory_symlink("..", folder.path() / "cat" / "up");
  const data::LabelledFiles files = data::scan_class_folders(folder.path());
  CHECK(files.classes == Names{"cat", "dog", "store"});
  CHECK(std::ranges::count(relative_paths(files), "cat/1.jpg") == 1);
  CHECK(std::ranges::count(relative_paths(files), "dog/3.jpg") == 1);
  CHECK(relative_paths(files).size() < 20);
}

TEST_CASE("What is wrong with a folder is said") {
  const Folder folder({"cat/1.jpg", "dog/readme.txt", "owl/2.txt"});
  CHECK_THROWS_WITH(data::scan_class_folders(folder.path()),
                    Contains("dog, owl") && Contains(".jpeg"));
  CHECK_THROWS_WITH(data::scan_class_folders(folder.path() / "cat"), Contains("no folders"));
  CHECK_THROWS_WITH(data::scan_class_folders(folder.path() / "none"), Contains("no such folder"));
  CHECK_THROWS_WITH(data::scan_class_folders(folder.path() / "cat/1.jpg"),
                    Contains("not a folder"));
  CHECK_THROWS_WITH(data::scan_class_folders(folder.path() / std::string(300, 'x')),
                    Contains("File name too long"));
  CHECK_THROWS_AS(data::scan_flat_folder(folder.path() / "dog"), DataError);
}

TEST_CASE("Classes whose names are not UTF-8 are refused at once; files may have any name") {
  const Folder latin1({"caf\xe9/1.jpg", "th\xe9/1.jpg", "cat/1.jpg"});
  CHECK_THROWS_AS(data::scan_class_folders(latin1.path()), DataError);
  CHECK_THROWS_WITH(data::scan_class_folders(latin1.path()),
                    Contains(R"(classes "caf\xe9", "th\xe9" are not UTF-8)"));
  const Folder flat({"caf\xe9_1.jpg", "cat_1.jpg"});
  CHECK_THROWS_WITH(data::scan_flat_folder(flat.path()), Contains(R"("caf\xe9" are not UTF-8)"));

  const Folder files({"caf\u00e9/caf\xe9.jpg", "\u732b/\xff\xfe.jpg", "\u732b/sub\xe9/1.jpg"});
  const data::LabelledFiles found = data::scan_class_folders(files.path());
  CHECK(found.classes == Names{"caf\u00e9", "\u732b"});
  CHECK(relative_paths(found) ==
        Names{"caf\u00e9/caf\xe9.jpg", "\u732b/\xff\xfe.jpg", "\u732b/sub\xe9/1.jpg"});
  CHECK(data::scan_flat_folder(Folder({"cat_\xe9.jpg"}).path()).classes == Names{"cat"});
}

TEST_CASE("In the flat folder of the pets, the class ends at the last underscore") {
  const Folder folder({"american_bulldog_10.jpg", "american_bulldog_9.jpg",
                       "american_pit_bull_terrier_1.jpg", "Bengal_1.jpg", "Abyssinian_100.mat",
                       "._Bengal_1.jpg"});
  const data::LabelledFiles files = data::scan_flat_folder(folder.path());
  CHECK(files.classes == Names{"Bengal", "american_bulldog", "american_pit_bull_terrier"});
  CHECK(relative_paths(files) == Names{"Bengal_1.jpg", "american_bulldog_10.jpg",
                                       "american_bulldog_9.jpg",
                                       "american_pit_bull_terrier_1.jpg"});
  CHECK(files.hidden == 1);
  const Folder nameless({"photo.jpg"});
  CHECK_THROWS_WITH(data::scan_flat_folder(nameless.path()),
                    Contains("photo.jpg") && Contains("CLASS_NUMBER.jpg"));
}

TEST_CASE("A folder is opened whatever its arrangement") {
  const Folder parts({"train/cat/1.jpg", "train/dog/2.jpg", "val/dog/3.jpg", "test/cat/4.jpg"});
  const data::OpenedFolder two = data::open_folder(parts.path());
  CHECK(two.train.files.size() == 2);
  REQUIRE(two.valid);
  CHECK(relative_paths(*two.valid) == Names{"dog/3.jpg"});
  CHECK(two.valid->classes == Names{"cat", "dog"});
  CHECK(two.valid->files[0].label == 1);

  const Folder classes({"cat/1.jpg", "dog/2.jpg"});
  CHECK(data::open_folder(classes.path()).train.classes == Names{"cat", "dog"});
  CHECK_FALSE(data::open_folder(classes.path()).valid);

  const Folder pets({"images/cat_1.jpg", "images/dog_2.jpg", "annotations/list.txt"});
  CHECK(data::open_folder(pets.path()).train.classes == Names{"cat", "dog"});
  CHECK(data::open_folder(pets.path() / "images").train.classes == Names{"cat", "dog"});

  const Folder strange({"train/cat/1.jpg", "valid/cow/2.jpg"});
  CHECK_THROWS_WITH(data::open_folder(strange.path()), Contains("cow") && Contains("cat"));
  Names many;
  for (int i = 0; i < 1000; ++i) many.push_back("class" + std::to_string(i));
  CHECK_THROWS_WITH(data::with_classes(data::scan_folder(classes.path()), many),
                    Contains("1000 known ones") && Contains("class9, …") && !Contains("class10"));
}

TEST_CASE("A split takes a share of every class and depends on nothing but the seed") {
  Folder folder({"rare/only.jpg"});
  for (int i = 0; i < 10; ++i) folder.add("cat/" + std::to_string(i) + ".jpg");
  for (int i = 0; i < 3; ++i) folder.add("dog/" + std::to_string(i) + ".jpg");
  const data::LabelledFiles files = data::scan_class_folders(folder.path());
  const auto [train, valid] = data::split_by_class(files, 0.2, 1);
  const auto count = [](const data::LabelledFiles& part, std::int64_t label) {
    return std::ranges::count(part.files, label, &data::LabelledFiles::File::label);
  };
  CHECK(count(valid, 0) == 2);
  CHECK(count(valid, 1) == 1);
  CHECK(count(valid, 2) == 0);
  CHECK(train.files.size() + valid.files.size() == files.files.size());
  CHECK(train.classes == files.classes);
  CHECK(relative_paths(data::split_by_class(files, 0.2, 1).second) == relative_paths(valid));
  CHECK_THROWS_AS(data::split_by_class(files, 1.0, 1), UsageError);
}
