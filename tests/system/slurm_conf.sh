# shellcheck shell=bash
# common_slurm_conf FOLDER: what the configurations of all Slurms have that tests run, with their files in FOLDER. What is
# missing: the controller, the nodes and the partition.
common_slurm_conf() {
  local slurm=$1
  cat <<CONF
ClusterName=coltest
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$slurm/munge.sock
CredType=cred/munge
StateSaveLocation=$slurm/state
SlurmdSpoolDir=$slurm/spool.%n
SlurmctldPidFile=$slurm/slurmctld.pid
SlurmdPidFile=$slurm/slurmd.%n.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdLogFile=$slurm/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
PartitionName=p Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
}
