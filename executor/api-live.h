/* Live processes at the edge: for the api-*.c files only. */
#pragma once

#include "executor/live-process.h"
#include "stella/process.h"

/* A StellaProcess of it, which owns the reference; its end closes the process. */
StellaProcess *api_live_new(ExrLive *take_live);
