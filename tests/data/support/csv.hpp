// SPDX-License-Identifier: Apache-2.0
// The golden CSV files: no field holds a comma or a quote, so reading them takes a dozen lines.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace collar::test {

using CsvRow = std::map<std::string, std::string>;

inline std::vector<std::string> split_csv(const std::string& line) {
  std::vector<std::string> fields;
  std::stringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

/// The rows as maps from column name to field; missing fields are empty.
inline std::vector<CsvRow> read_csv(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) throw std::runtime_error("cannot read " + path.string());
  const std::vector<std::string> names = split_csv(line);
  std::vector<CsvRow> rows;
  while (std::getline(file, line)) {
    std::vector<std::string> fields = split_csv(line);
    fields.resize(names.size());
    CsvRow& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = fields[i];
  }
  return rows;
}

}  // namespace collar::test
