/* A factory as a host implements one: it answers as the test says, counts what it is asked, and makes fake sessions. */
#pragma once

#include "fake-session.h"

#include "stella/factory.h"

#define FAKE_TYPE_FACTORY (fake_factory_get_type())
G_DECLARE_FINAL_TYPE(FakeFactory, fake_factory, FAKE, FACTORY, GObject)

struct _FakeFactory {
	GObject parent;
	char *name;
	/* What it answers; set by the test. */
	const char *unavailable;  /* the reason; NULL: it is available */
	const char *incompatible; /* what it says of every policy; NULL: it accepts */
	bool refuses_in_silence;  /* without an error; or with one of another domain: */
	bool refuses_as_io;
	int start_code;	     /* of STELLA_ERROR, that every start fails with; -1: none does */
	bool starts_nothing; /* gives neither a session nor an error */
	Gate *gate;	     /* a start comes here; borrowed; or NULL */
	bool heeds_cancel;   /* and then fails as GIO's own functions do */
	/* What it was asked. */
	atomic_int checks, starts;
	FakeSession *made; /* the last; a reference; or NULL */
};

FakeFactory *fake_factory_new(const char *name);
