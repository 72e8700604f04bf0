// TSQ_API marks what the shared library exports; all else in it is hidden.
#pragma once

#if defined(__GNUC__)
#define TSQ_API __attribute__((visibility("default")))
#else
#define TSQ_API
#endif
