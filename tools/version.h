// What this build is.
#pragma once

#include <string>

namespace tsq::tool {

// Of version_info.cpp, which CMake writes.
extern const char* const kVersion;
extern const char* const kCommit;  // empty where the sources are no checkout
extern const char* const kCompiler;
extern const char* const kBuildType;

// "tsq 0.1.0" and lines about the build and this CPU.
std::string version_text();

}  // namespace tsq::tool
