/* The registry: factories in an order, and the choice among them; see stella/factory.h.
 *
 * Invariants: a policy that is no policy is refused before any factory is asked; the first in order that can do what the
 * policy asks for is taken, and none after it unless the host lacks what that one needs (STELLA_ERROR_HOST_UNSUPPORTED).
 * Any other failure of a start is the caller's to know of: going on would run commands where nobody has looked why. Every
 * one that is passed over is told to the log, and when there is none left, all of them are.
 *
 * The lock is held for the list alone, never while a factory is asked: it may be a host's, and call back. */
#include "executor/api-factory.h"

#include "common/api-error.h"
#include "executor/api-task.h"

#include <pthread.h>
#include <string.h>

/* As it was named when it was registered, whatever it calls itself later. */
typedef struct {
	char *name;
	StellaFactory *factory;
} Entry;

struct _StellaFactoryRegistry {
	GObject parent;
	pthread_mutex_t lock;
	GPtrArray *entries; /* Entry; under the lock */
};

G_DEFINE_FINAL_TYPE(StellaFactoryRegistry, stella_factory_registry, G_TYPE_OBJECT)

static void entry_free(gpointer data)
{
	Entry *entry = data;

	g_free(entry->name);
	g_object_unref(entry->factory);
	g_free(entry);
}

static void stella_factory_registry_init(StellaFactoryRegistry *registry)
{
	pthread_mutex_init(&registry->lock, NULL);
	registry->entries = g_ptr_array_new_with_free_func(entry_free);
}

static void registry_finalize(GObject *object)
{
	StellaFactoryRegistry *registry = STELLA_FACTORY_REGISTRY(object);

	g_ptr_array_unref(registry->entries);
	pthread_mutex_destroy(&registry->lock);
	G_OBJECT_CLASS(stella_factory_registry_parent_class)->finalize(object);
}

static void stella_factory_registry_class_init(StellaFactoryRegistryClass *class)
{
	G_OBJECT_CLASS(class)->finalize = registry_finalize;
}

StellaFactoryRegistry *stella_factory_registry_new(void)
{
	return g_object_new(STELLA_TYPE_FACTORY_REGISTRY, NULL);
}

StellaFactoryRegistry *stella_factory_registry_new_default(void)
{
	StellaFactoryRegistry *registry = stella_factory_registry_new();
	g_autoptr(StellaFactory) fsgate = stella_factory_new_fsgate();
	g_autoptr(StellaFactory) bwrap = stella_factory_new_bwrap();

	(void)stella_factory_registry_register(registry, fsgate, NULL);
	(void)stella_factory_registry_register(registry, bwrap, NULL);
	return registry;
}

/* Where the one of that name is; the length of the list when there is none. */
static guint find(const StellaFactoryRegistry *registry, const char *name)
{
	guint i = 0;

	while (i < registry->entries->len &&
	       strcmp(((const Entry *)registry->entries->pdata[i])->name, name) != 0)
		i++;
	return i;
}

gboolean stella_factory_registry_register(StellaFactoryRegistry *registry, StellaFactory *factory,
					  GError **error)
{
	g_autofree char *name = NULL;
	gboolean is_new;

	g_return_val_if_fail(STELLA_IS_FACTORY_REGISTRY(registry), FALSE);
	g_return_val_if_fail(STELLA_IS_FACTORY(factory), FALSE);
	name = g_strdup(stella_factory_get_name(factory));
	pthread_mutex_lock(&registry->lock);
	is_new = find(registry, name) == registry->entries->len;
	if (is_new) {
		Entry *entry = g_new(Entry, 1);

		*entry = (Entry){ g_strdup(name), g_object_ref(factory) };
		g_ptr_array_add(registry->entries, entry);
	}
	pthread_mutex_unlock(&registry->lock);
	if (!is_new)
		api_error_set(error, STELLA_ERROR_EXISTS,
			      "a backend of the name \"%s\" is registered already", name);
	return is_new;
}

gboolean stella_factory_registry_unregister(StellaFactoryRegistry *registry, const char *name)
{
	Entry *entry = NULL;
	guint i;

	g_return_val_if_fail(STELLA_IS_FACTORY_REGISTRY(registry), FALSE);
	g_return_val_if_fail(name != NULL, FALSE);
	pthread_mutex_lock(&registry->lock);
	i = find(registry, name);
	if (i < registry->entries->len)
		entry = g_ptr_array_steal_index(registry->entries, i);
	pthread_mutex_unlock(&registry->lock);
	if (!entry)
		return FALSE;
	entry_free(entry);
	return TRUE;
}

StellaFactory *stella_factory_registry_get(StellaFactoryRegistry *registry, const char *name)
{
	StellaFactory *factory = NULL;
	guint i;

	g_return_val_if_fail(STELLA_IS_FACTORY_REGISTRY(registry), NULL);
	g_return_val_if_fail(name != NULL, NULL);
	pthread_mutex_lock(&registry->lock);
	i = find(registry, name);
	if (i < registry->entries->len)
		factory = g_object_ref(((Entry *)registry->entries->pdata[i])->factory);
	pthread_mutex_unlock(&registry->lock);
	return factory;
}

GPtrArray *stella_factory_registry_list(StellaFactoryRegistry *registry)
{
	GPtrArray *list;

	g_return_val_if_fail(STELLA_IS_FACTORY_REGISTRY(registry), NULL);
	list = g_ptr_array_new_with_free_func(g_object_unref);
	pthread_mutex_lock(&registry->lock);
	for (guint i = 0; i < registry->entries->len; i++) {
		const Entry *entry = registry->entries->pdata[i];

		g_ptr_array_add(list, g_object_ref(entry->factory));
	}
	pthread_mutex_unlock(&registry->lock);
	return list;
}

GPtrArray *stella_factory_registry_list_available(StellaFactoryRegistry *registry)
{
	g_autoptr(GPtrArray) all = stella_factory_registry_list(registry);
	GPtrArray *list;

	g_return_val_if_fail(all != NULL, NULL);
	list = g_ptr_array_new_with_free_func(g_object_unref);
	for (guint i = 0; i < all->len; i++)
		if (stella_factory_is_available(all->pdata[i], NULL))
			g_ptr_array_add(list, g_object_ref(all->pdata[i]));
	return list;
}
