"""The fat binary of the kernels as a C++ source: kKernelImage and kKernelToolkit of kernels.hpp. Without one, an empty image.

usage: embed.py OUTPUT TOOLKIT [FATBIN]
TOOLKIT is the version of nvcc, as 13.0; 0.0 without one.
"""
import struct
import sys

PER_LINE = 6


def source(binary, toolkit):
    major, minor = toolkit.split('.')[:2]
    binary += bytes(-len(binary) % 8)
    words = [f'{word:#x},' for (word,) in struct.iter_unpack('<Q', binary)]
    lines = [' '.join(words[i:i + PER_LINE]) for i in range(0, len(words), PER_LINE)]
    text = '#include "backend/nccl/kernels.hpp"\n\nnamespace col::nccl_backend {\n'
    text += f'const int kKernelToolkit = {int(major) * 1000 + int(minor) * 10};\n'
    if not lines:
        return text + 'const std::span<const std::uint64_t> kKernelImage;\n}\n'
    text += 'static constexpr std::uint64_t kWords[] = {\n' + '\n'.join(lines) + '\n};\n'
    return text + 'const std::span<const std::uint64_t> kKernelImage = kWords;\n}\n'


def main():
    output, toolkit, *fatbins = sys.argv[1:]
    binary = b''
    for path in fatbins:
        with open(path, 'rb') as file:
            binary += file.read()
    with open(output, 'w', encoding='ascii') as file:
        file.write(source(binary, toolkit))


main()
