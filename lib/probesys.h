/* SPDX-License-Identifier: MIT */
/* What is asked of the kernel, each for a child of probe_run. */
#ifndef SB_PROBESYS_H
#define SB_PROBESYS_H

int probe_kernel(void);
int probe_namespaces(void);
int probe_user_namespaces(void);
int probe_proc(void);
int probe_mounts(void);
int probe_tmpfs(void);
int probe_devpts(void);
int probe_root(void); /* nsroot_make */
int probe_pidfd(void);
int probe_calls(void);
int probe_seccomp(void);
int probe_landlock(void);
int probe_beneath(void); /* MOVE_MOUNT_BENEATH */
int probe_tun(void);
int probe_newuidmap(void);

/* Control groups. What they make goes with probe_clean, -1 when it does not. */
int probe_kill(void);
int probe_memory(void);
int probe_pids(void);
int probe_cpu(void);
int probe_clean(void);

#endif
