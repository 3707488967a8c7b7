/* SPDX-License-Identifier: MIT
 *
 * Many documents are parsed and kept, then their texts are read, nearly all of them those of one document in ten.
 *
 *     workload DOCUMENTS SECONDS      reads for so long, and says how fast and in how much memory
 *     workload DOCUMENTS - READ       reads so many */
#include "workload.h"

#include <cJSON.h>

#include <string.h>

enum { words = 40 };

static void text_of(uint64_t document, char* text) {
    for (int i = 0; i < words; ++i, text += 10)
        sprintf(text, "%09llu ",
                (unsigned long long)(mixed(document * words + (uint64_t)i + 1) % 1000000000));
}

static cJSON* parsed(uint64_t document) {
    char text[10 * words + 1], json[sizeof text + 100];
    text_of(document, text);
    snprintf(
        json, sizeof json,
        "{\"number\": %llu, \"title\": \"the document with the number %llu\", \"text\": \"%s\"}",
        (unsigned long long)document, (unsigned long long)document, text);
    cJSON* made = cJSON_Parse(json);
    if (made == NULL) {
        fprintf(stderr, "workload: document %llu cannot be parsed\n", (unsigned long long)document);
        exit(1);
    }
    return made;
}

int main(int argc, char** argv) {
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "workload DOCUMENTS SECONDS, or - READ\n");
        return 2;
    }
    const uint64_t documents = strtoull(argv[1], NULL, 10);
    const double seconds = argc == 3 ? strtod(argv[2], NULL) : 0;
    const uint64_t read_at_most = argc == 3 ? UINT64_MAX : strtoull(argv[3], NULL, 10);
    cJSON** all = calloc(documents, sizeof *all);
    if (all == NULL) {
        perror("calloc");
        return 1;
    }
    for (uint64_t document = 0; document < documents; ++document) all[document] = parsed(document);
    const double begin = now();
    if (argc == 3) say_memory(0, 0);
    uint64_t read = 0;
    double next = 1;
    for (double second = 0; read < read_at_most && (argc == 4 || second < seconds); ++read) {
        const uint64_t random = mixed(read + documents);
        /* One in ten thousand is of any document. */
        const uint64_t hot = mixed(random) % (documents / 10 + 1) * 10 % documents;
        const uint64_t document = argc == 4             ? read % documents
                                  : random % 10000 != 0 ? hot
                                                        : mixed(random) % documents;
        char text[10 * words + 1];
        text_of(document, text);
        cJSON* wanted = cJSON_CreateString(text);
        if (!cJSON_Compare(cJSON_GetObjectItemCaseSensitive(all[document], "text"), wanted, 1)) {
            fprintf(stderr, "workload: document %llu has another text\n",
                    (unsigned long long)document);
            return 1;
        }
        cJSON_Delete(wanted);
        if (read % 100 != 0 || argc == 4) continue;
        second = now() - begin;
        if (second < next) continue;
        say_memory(second, read);
        ++next;
    }
    for (uint64_t document = 0; document < documents; ++document) cJSON_Delete(all[document]);
    free(all);
    return 0;
}
