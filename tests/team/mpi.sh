# mpi.sh: more ranks than cores, as root, for tests: what both MPIs must be told.
#
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
export OMPI_MCA_btl_vader_single_copy_mechanism=none
export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe   # Open MPI 5
export PRTE_MCA_hwloc_default_binding_policy=none
