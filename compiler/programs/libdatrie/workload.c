/* SPDX-License-Identifier: MIT
 *
 * A dictionary of long keys is built, then keys are looked up, nearly all of them one in ten: KEYS, as workload.h says. */
#include "workload.h"

#include <datrie/trie.h>

enum { least_length = 60, most_length = 400, longest = 512 };

/* Twelve digits that tell keys apart, then text. */
static void make_key(uint64_t number, AlphaChar* key) {
    uint64_t digits = mixed(number);
    const int length = least_length + (int)(mixed(digits) % (uint64_t)(most_length - least_length));
    for (int i = 0; i < length; ++i) {
        key[i] = 'a' + (AlphaChar)(digits % 26);
        digits = i % 12 == 11 ? mixed(digits + number) : digits / 26;
    }
    key[length] = 0;
}

int main(int argc, char** argv) {
    struct pace pace = pace_of(argc, argv, "KEYS");
    AlphaMap* letters = alpha_map_new();
    alpha_map_add_range(letters, 'a', 'z');
    Trie* dictionary = trie_new(letters);
    alpha_map_free(letters);
    AlphaChar key[longest];
    for (uint64_t number = 0; number < pace.count; ++number) {
        make_key(number, key);
        if (!trie_store(dictionary, key, (TrieData)number))
            give_up("key %llu was not stored", (unsigned long long)number);
    }
    begin(&pace);
    for (uint64_t call; next_call(&pace, &call);) {
        const uint64_t number = asked_for(&pace, call);
        TrieData data = TRIE_DATA_ERROR;
        make_key(number, key);
        if (!trie_retrieve(dictionary, key, &data) || data != (TrieData)number)
            give_up("key %llu has the value %lld", (unsigned long long)number, (long long)data);
    }
    trie_free(dictionary);
    return 0;
}
