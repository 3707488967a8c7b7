/* SPDX-License-Identifier: MIT */
void* kept_in_file[2] = {kept_in_file, 0};
void* kept_in_zeros[100000];
void keep_in_file(void* p) { kept_in_file[1] = p; }
void keep_in_zeros(void* p) { kept_in_zeros[70000] = p; }
