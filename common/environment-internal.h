/* Between the files of the environment: what the view itself decides. */
#pragma once

#include "common/environment.h"

#include <glib.h>

/* Layer 4: what the view's paths and identity make of env (char * to char *, owned by the table),
 * which holds layers 1 to 3. */
void environment_put_view(GHashTable *env, const EnvironmentOptions *options);

/* Turns the MISE_* values of env that are host paths of a mount into view paths. To be called once:
 * a host path and a view path can look the same. */
void environment_map_mise(GHashTable *env, const ViewPlan *plan);
