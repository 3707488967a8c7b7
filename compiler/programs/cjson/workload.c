/* SPDX-License-Identifier: MIT
 *
 * Many documents are parsed and kept, then their texts are read, nearly all of them those of one document in ten: DOCUMENTS,
 * as workload.h says. */
#include "workload.h"

#include <cJSON.h>

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
    if (made == NULL) give_up("document %llu cannot be parsed", (unsigned long long)document);
    return made;
}

int main(int argc, char** argv) {
    struct pace pace = pace_of(argc, argv, "DOCUMENTS");
    cJSON** all = calloc(pace.count, sizeof *all);
    if (all == NULL) give_up("no memory for %llu documents", (unsigned long long)pace.count);
    for (uint64_t document = 0; document < pace.count; ++document) all[document] = parsed(document);
    begin(&pace);
    for (uint64_t call; next_call(&pace, &call);) {
        const uint64_t document = asked_for(&pace, call);
        char text[10 * words + 1];
        text_of(document, text);
        cJSON* wanted = cJSON_CreateString(text);
        if (!cJSON_Compare(cJSON_GetObjectItemCaseSensitive(all[document], "text"), wanted, 1))
            give_up("document %llu has another text", (unsigned long long)document);
        cJSON_Delete(wanted);
    }
    for (uint64_t document = 0; document < pace.count; ++document) cJSON_Delete(all[document]);
    free(all);
    return 0;
}
