# For a clone: vcpkg install col --overlay-ports=packaging/vcpkg
# Of Gloo, vcpkg has a release that is too old, and it has no UCX. Its programs would not stay beside the library: the launcher comes
# from another package.
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
vcpkg_configure_meson(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS -Dbackends=shm -Dtools=false -Dpython=disabled -Dexamples=false -Dtests=false)
vcpkg_install_meson()
vcpkg_fixup_pkgconfig()
# The files for CMake find the library from where they lie.
set(VCPKG_POLICY_SKIP_MISPLACED_CMAKE_FILES_CHECK enabled)
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share" "${CURRENT_PACKAGES_DIR}/debug/lib/cmake")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
