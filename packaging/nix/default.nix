# col's library and tools for Nix, from a clone: nix-build -E '(import <nixpkgs> {}).callPackage ./packaging/nix {}'
# nixpkgs has no Gloo, so that hosts talk over UCX. The Python package is the wheel (docs/wheel.md).
{ lib, stdenv, meson, ninja, pkg-config, python3, cli11, fmt, nlohmann_json, openssl, ucx }:

stdenv.mkDerivation {
  pname = "col";
  version = "0.1.0";
  src = lib.cleanSource ../..;

  nativeBuildInputs = [ meson ninja pkg-config python3 ];
  buildInputs = [ cli11 fmt nlohmann_json openssl ucx ];
  mesonBuildType = "release";
  mesonFlags = [ "-Dbackends=shm,ucx" "-Dtools=true" "-Dpython=disabled" "-Dexamples=false" "-Dtests=false" ];

  # libcrypto is loaded when it is first used.
  postFixup = ''
    patchelf --add-rpath ${lib.getLib openssl}/lib $out/lib/libcol.so
  '';

  meta = {
    description = "Collective communication for processes, library, launcher and tools";
    license = lib.licenses.asl20;
    platforms = lib.platforms.linux;
    mainProgram = "colrun";
  };
}
