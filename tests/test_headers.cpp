// Nothing: CMake compiles the headers of its target for all tests.
