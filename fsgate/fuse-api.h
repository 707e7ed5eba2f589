/* The FUSE interface that the handlers are written against. */
#pragma once

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
