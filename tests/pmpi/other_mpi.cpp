// Once as a library that is named like MPICH's, once as a program that uses it.
#ifdef LIBRARY
extern "C" int MPIR_Something() { return 0; }
#else
extern "C" int MPIR_Something();
int main() { return MPIR_Something(); }
#endif
