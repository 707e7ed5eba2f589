/* Which sanitizers this is built with: 0 or 1, for the few places where they have to be told something, or get in the way. */
#pragma once

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#define WITH_ADDRESS_SANITIZER 1
#else
#define WITH_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define WITH_THREAD_SANITIZER 1
#else
#define WITH_THREAD_SANITIZER 0
#endif

#define WITH_SANITIZER (WITH_ADDRESS_SANITIZER || WITH_THREAD_SANITIZER)
