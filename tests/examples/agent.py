"""The library from Python, by ctypes alone: no compiler, no generated code.

    agent.py WORKSPACE

Reads and writes files through the boundary, runs commands in a session, and shows what was refused. LIBSTELLA names the shared
library where the loader does not find it by itself."""
import ctypes
import json
import os
import sys
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_ssize_t, c_uint, c_uint32, c_void_p

lib = ctypes.CDLL(os.environ.get('LIBSTELLA', 'libstella-sandbox.so.0'))
glib = ctypes.CDLL('libglib-2.0.so.0')
gobject = ctypes.CDLL('libgobject-2.0.so.0')


class GError(ctypes.Structure):
    _fields_ = [('domain', c_uint32), ('code', c_int), ('message', c_char_p)]


Error = POINTER(GError)


class Stella(Exception):
    def __init__(self, error):
        super().__init__(error.contents.message.decode())
        lib.stella_error_code_name.restype = c_char_p
        self.code = lib.stella_error_code_name(error.contents.code).decode()
        glib.g_error_free(error)


def function(name, result, *arguments):
    """A function of the library whose last argument is a GError **, which becomes an exception."""
    raw = getattr(lib, name)
    raw.restype, raw.argtypes = result, [*arguments, POINTER(Error)]

    def call(*values):
        error = Error()
        answer = raw(*values, byref(error))
        if error:
            raise Stella(error)
        return answer
    return call


glib.g_error_free.argtypes = [Error]
glib.g_free.argtypes = [c_void_p]
glib.g_bytes_get_data.restype, glib.g_bytes_get_data.argtypes = c_void_p, [c_void_p, POINTER(c_size_t)]
glib.g_bytes_unref.argtypes = gobject.g_object_unref.argtypes = [c_void_p]
new_policy = function('stella_policy_new_from_json', c_void_p, c_char_p, c_ssize_t)
create_session = function('stella_factory_create_session', c_void_p, c_void_p, c_void_p, c_void_p)
run_command = function('stella_session_exec', c_void_p, c_void_p, c_char_p, c_void_p, c_void_p)
close_session = function('stella_session_close', c_int, c_void_p, c_void_p)
files_of = function('stella_session_dup_files', c_void_p, c_void_p)
read_file = function('stella_files_read', c_void_p, c_void_p, c_char_p, ctypes.c_uint64, c_size_t, c_void_p)
write_file = function('stella_files_write', c_int, c_void_p, c_char_p, c_char_p, c_size_t, c_uint, c_void_p)
for name in ('stella_factory_new_fsgate', 'stella_exec_result_to_json', 'stella_session_get_id'):
    getattr(lib, name).restype = c_void_p
lib.stella_exec_result_to_json.argtypes = lib.stella_exec_result_unref.argtypes = [c_void_p]
lib.stella_files_unref.argtypes = lib.stella_policy_unref.argtypes = lib.stella_session_get_id.argtypes = [c_void_p]


def take_text(pointer):
    text = ctypes.string_at(pointer).decode()
    glib.g_free(pointer)
    return text


def take_bytes(pointer):
    size = c_size_t()
    data = ctypes.string_at(glib.g_bytes_get_data(pointer, byref(size)), size.value)
    glib.g_bytes_unref(pointer)
    return data


def execute(session, command):
    result = run_command(session, command.encode(), None, None)
    answer = json.loads(take_text(lib.stella_exec_result_to_json(result)))
    lib.stella_exec_result_unref(result)
    return answer


def main(workspace):
    text = json.dumps({'version': 1, 'network': {'mode': 'disabled'}, 'filesystem': {
        'workspace_root': workspace, 'working_dir': '/workspace'}}).encode()
    policy = new_policy(text, len(text))
    factory = lib.stella_factory_new_fsgate()
    session = create_session(factory, policy, None)
    lib.stella_policy_unref(policy)
    files = files_of(session)
    print(ctypes.string_at(lib.stella_session_get_id(session)).decode()[:8])

    write_file(files, b'/workspace/from-python', b'hello\n', 6, 0, None)
    answer = execute(session, 'cat from-python; echo bye >> from-python; echo x > /usr/x')
    print(answer['ended'], answer['exit_code'], answer['stdout'].strip())
    print(answer['changes'])
    print(take_bytes(read_file(files, b'/workspace/from-python', 0, 0, None)))
    try:
        read_file(files, b'/workspace/../../etc/shadow', 0, 0, None)
    except Stella as error:
        print('refused:', error.code)

    lib.stella_files_unref(files)
    close_session(session, None)
    gobject.g_object_unref(session)
    gobject.g_object_unref(factory)


if __name__ == '__main__':
    main(os.path.abspath(sys.argv[1]))
