"""Names of the functions that the public headers declare, one a line: what STELLA_API stands before, and the type
function of each G_DECLARE_*. list-symbols.py INCLUDE_DIR"""
import pathlib
import re
import sys


def symbols(include_dir):
    names = set()
    for header in sorted(pathlib.Path(include_dir, 'stella').glob('*.h')):
        text = re.sub(r'/\*.*?\*/', ' ', header.read_text(), flags=re.S)
        for declaration in re.findall(r'STELLA_API\s+((?:(?!STELLA_API)[^;{])*)', text):
            macro = re.match(r'G_DECLARE_\w+\(\s*\w+,\s*(\w+)', declaration)
            if macro:
                names.add(macro.group(1) + '_get_type')
            elif not declaration.startswith('__attribute__'):
                names.add(re.search(r'(\w+)\s*\(', declaration).group(1))
    return sorted(names)


if __name__ == '__main__':
    print('\n'.join(symbols(sys.argv[1])))
