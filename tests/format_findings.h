// What verify finds in a file that a test has changed.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "format/reader.h"
#include "format/verify.h"
#include "format_files.h"

namespace tsq::format {

// Of bytes that open once they are signed again.
inline std::vector<Finding> findings_in(Bytes bytes) {
  sign(bytes);
  const auto file = File::parse(bytes.span());
  EXPECT_TRUE(file) << file.error().message();
  const auto report = verify(*file);
  EXPECT_TRUE(report);
  std::uint64_t bytes_to_check = file->data().size();
  for (const auto& section : file->optional_sections()) bytes_to_check += section.bytes.size();
  EXPECT_EQ(report->checked_bytes, bytes_to_check);
  return report->findings;
}

inline void expect_one(const std::vector<Finding>& findings, const Finding& expected) {
  ASSERT_EQ(findings.size(), 1u) << expected.where;
  EXPECT_EQ(findings[0].where, expected.where);
  EXPECT_EQ(findings[0].found, expected.found);
  EXPECT_EQ(findings[0].expected, expected.expected);
}

}  // namespace tsq::format
