// Once as a library that is named like MPICH's, once as a program that uses it.
extern "C" int MPI_Init(int*, char***);
#ifdef LIBRARY
int MPI_Init(int*, char***) { return 0; }
#else
int main(int argc, char** argv) { return MPI_Init(&argc, &argv); }
#endif
