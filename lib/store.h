/* SPDX-License-Identifier: MIT */
/*
 * The store: the directory named by SB_STORE, see sb-store(5). Like mem this
 * module ends the program by itself, because every command would do so with
 * the same words: 100 when SB_STORE is not set or not absolute, 111 when the
 * store cannot be opened. Descriptors are close-on-exec; caller closes.
 */
#ifndef SB_STORE_H
#define SB_STORE_H

/* The value of SB_STORE: absolute, never NULL. Borrowed. */
const char *store_path(void);

/* Directory $SB_STORE. */
int store_open(void);

/* Directory $SB_STORE/layer-stack. */
int store_open_stack(void);

/* Directory $SB_STORE/workspace. */
int store_open_workspace(void);

#endif
