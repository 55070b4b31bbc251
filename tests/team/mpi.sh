# mpi.sh: more ranks than cores, as root, for tests: what both MPIs must be told;
# and programs with an MPI.
#
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe   # Open MPI 5
export PRTE_MCA_hwloc_default_binding_policy=none

# Build the program with MPI $1 and set `tether` to it. All but the team and
# main.c are the objects of $build, where that differs in MPI alone.
mpi_build() {
    where=$(make --no-print-directory MPI=1 MPICC=mpicc."$1" CC="${CC:-gcc}" \
        build-folder)
    tether=$where/tether
    if [ "$where" = "$build-mpicc.$1" ] && [ ! -e "$where" ]; then
        mkdir "$where" && cp -Rp "$build/src" "$build/gen" "$where" &&
            rm -rf "$where/src/team" "$where/src/cli/main.o" &&
            find "$where/src" -name '*.d' \
                -exec sed -i "s|$build/|$where/|g" {} +
    fi
    make --no-print-directory -j "$(getconf _NPROCESSORS_ONLN)" MPI=1 \
        MPICC=mpicc."$1" CC="${CC:-gcc}" tether-program
}
