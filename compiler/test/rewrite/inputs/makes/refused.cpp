// SPDX-License-Identifier: MIT
#include <cstdlib>
#include <cstring>
struct item {
    char* text;
};
struct pool {
    // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: 'pool::take' is named by a makes line, and is a method, so no twin of it can be written [obase:rewrite]
    static char* take() { return static_cast<char*>(std::malloc(8)); }
};
// CHECK-DAG: refused.cpp:[[@LINE+2]]:{{[0-9]+}}: error: 'take_any{{.*}}' is named by a makes line, and is a template, so no twin of it can be written [obase:rewrite]
template <class T>
T* take_any() {
    return static_cast<T*>(std::malloc(sizeof(T)));
}
// CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: 'take_either' is named by a makes line, and is overloaded, so no twin of it can be written [obase:rewrite]
char* take_either(int bytes) { return static_cast<char*>(std::malloc(static_cast<unsigned>(bytes))); }
// CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: 'take_either' is named by a makes line, and is overloaded, so no twin of it can be written [obase:rewrite]
char* take_either(unsigned bytes) { return static_cast<char*>(std::malloc(bytes)); }
// CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: 'take_numbered' is named by a makes line, and has a static variable, of which there would be two, so no twin of it can be written [obase:rewrite]
char* take_numbered() {
    static char number = 0;
    char* made = static_cast<char*>(std::malloc(8));
    *made = ++number;
    return made;
}
char* helper() { return static_cast<char*>(std::malloc(8)); }
// CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: 'helper', from which 'take_helped' has what it returns, is named by no makes line [obase:rewrite]
char* take_helped() { return helper(); }
// CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: 'take_nothing' is named by a makes line, but nothing that it returns is seen to be allocated [obase:rewrite]
char* take_nothing(char* given) { return given; }
// CHECK-DAG: refused.cpp:[[@LINE+2]]:{{[0-9]+}}: error: an allocation is written by a macro [obase:rewrite]
#define TAKE(name) char* name() { return static_cast<char*>(std::malloc(8)); }
TAKE(take_written)
void use(item* i) {
    i->text = take_any<char>();
    // CHECK-DAG: refused.cpp:[[@LINE+1]]:{{[0-9]+}}: error: 'strdup' is named by a makes line, and no file below --root declares it outside of functions and classes [obase:rewrite]
    i->text = strdup("text");
}
