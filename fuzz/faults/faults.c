// Makes system calls of the program fail that this is preloaded into. Calls are trapped by a filter
// of the kernel (seccomp), so that also those count that do not go through the C library.
//
//   CUPOLA_FAULT_CALL   the name of the call (`write` is pwrite and writev, too), or `all`
//   CUPOLA_FAULT_NTH    which of them fails, from 1; 0 fails none, and they are counted
//   CUPOLA_FAULT_LASTS  1: all that come after it fail, too
//   CUPOLA_FAULT_ERROR  the number of the error, or 0: less is read or written than was asked for
//   CUPOLA_FAULT_IN     only calls on what is in this folder, on the standard streams and on pipes
//   CUPOLA_FAULT_LOG    the file that is told which calls failed, or how many there were

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

// The one place whose calls the filter lets pass.
long faults_syscall(long number, long a, long b, long c, long d, long e, long f);
extern const char faults_after[];

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#define ARGUMENTS(r) {r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]}
#define REGISTERS(context) ((context)->uc_mcontext.gregs)
#define RESULT REG_RAX
__asm__(".text\n"
        ".globl faults_syscall, faults_after\n.hidden faults_syscall, faults_after\n"
        "faults_syscall:\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\nmov %rdx, %rsi\nmov %rcx, %rdx\n"
        "mov %r8, %r10\nmov %r9, %r8\nmov 8(%rsp), %r9\nsyscall\n"
        "faults_after:\nret\n");
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#define ARGUMENTS(r) {r[0], r[1], r[2], r[3], r[4], r[5]}
#define REGISTERS(context) ((context)->uc_mcontext.regs)
#define RESULT 0
__asm__(".text\n"
        ".globl faults_syscall, faults_after\n.hidden faults_syscall, faults_after\n"
        "faults_syscall:\n"
        "mov x8, x0\nmov x0, x1\nmov x1, x2\nmov x2, x3\nmov x3, x4\nmov x4, x5\nmov x5, x6\n"
        "svc 0\n"
        "faults_after:\nret\n");
#else
#error "no system calls are known of this processor"
#endif

// What says which file a call is on: a path, one beside the descriptor of a folder, a descriptor.
enum names { PATH, PATH_AT, DESCRIPTOR };

static const struct call {
    const char *name;
    long number;
    enum names by;
    int argument;
} calls[] = {
#ifdef SYS_open
    {"open", SYS_open, PATH, 0},
    {"rename", SYS_rename, PATH, 0},
    {"unlink", SYS_unlink, PATH, 0},
    {"mkdir", SYS_mkdir, PATH, 0},
#endif
#ifdef SYS_renameat
    {"rename", SYS_renameat, PATH_AT, 1},
#endif
    {"open", SYS_openat, PATH_AT, 1},
    {"rename", SYS_renameat2, PATH_AT, 1},
    {"unlink", SYS_unlinkat, PATH_AT, 1},
    {"mkdir", SYS_mkdirat, PATH_AT, 1},
    {"read", SYS_read, DESCRIPTOR, 0},
    {"write", SYS_write, DESCRIPTOR, 0},
    {"write", SYS_pwrite64, DESCRIPTOR, 0},
    {"write", SYS_writev, DESCRIPTOR, 0},
    {"fsync", SYS_fsync, DESCRIPTOR, 0},
    {"fsync", SYS_fdatasync, DESCRIPTOR, 0},
    {"ftruncate", SYS_ftruncate, DESCRIPTOR, 0},
    {"flock", SYS_flock, DESCRIPTOR, 0},
    {"fchmod", SYS_fchmod, DESCRIPTOR, 0},
    {"mmap", SYS_mmap, DESCRIPTOR, 4},
    {"close", SYS_close, DESCRIPTOR, 0},
};
#define CALLS (sizeof calls / sizeof *calls)

static long counts[CALLS];
static long nth;
static int lasts, error_number;
static const char *folder;
static int journal = -1;

static void tell(const char *name, const char *text) {
    char line[4200];
    int length = snprintf(line, sizeof line, "%s %s\n", name, text);
    if (length >= (int)sizeof line) length = sizeof line - 1;
    faults_syscall(SYS_write, journal, (long)line, length, 0, 0, 0);
}

// Where a descriptor leads, or the folder that relative paths begin at.
static void place(char *path, size_t size, long descriptor) {
    char link[64];
    if (descriptor == AT_FDCWD) snprintf(link, sizeof link, "/proc/self/cwd");
    else snprintf(link, sizeof link, "/proc/self/fd/%ld", descriptor);
    long length = faults_syscall(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, size - 1, 0, 0);
    path[length > 0 ? length : 0] = 0;
}

static void name_of(const struct call *call, const long *arguments, char *path, size_t size) {
    if (call->by == DESCRIPTOR) {
        place(path, size, (int)arguments[call->argument]);
        return;
    }
    const char *given = (const char *)arguments[call->argument];
    if (given[0] == '/') {
        snprintf(path, size, "%s", given);
        return;
    }
    place(path, size, call->by == PATH_AT ? (int)arguments[0] : AT_FDCWD);
    size_t length = strlen(path);
    snprintf(path + length, size - length, "/%s", given);
}

// Pipes stand for the standard streams. Rust's own library panics where a folder cannot be closed.
static int is_meant(const struct call *call, const long *arguments, const char *path) {
    if (call->number == SYS_close
        && faults_syscall(SYS_fcntl, arguments[0], F_GETFL, 0, 0, 0, 0) & O_DIRECTORY) {
        return 0;
    }
    return !folder || !strncmp(path, folder, strlen(folder)) || !strncmp(path, "pipe:", 5);
}

static long performed(long number, const long *a) {
    return faults_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static long failed(const struct call *call, long *arguments) {
    if (call->number == SYS_close) performed(call->number, arguments);
    if (error_number) return -error_number;
    // The number of bytes, or of the parts of a vector.
    if (arguments[2] > 1) arguments[2] /= 2;
    return performed(call->number, arguments);
}

static void trapped(int signal, siginfo_t *info, void *context) {
    (void)signal;
    __typeof__(&REGISTERS((ucontext_t *)context)[0]) registers = REGISTERS((ucontext_t *)context);
    long arguments[6] = ARGUMENTS(registers);
    long number = info->si_syscall;
    size_t at = 0;
    while (at < CALLS - 1 && calls[at].number != number) at++;
    char path[4096];
    name_of(&calls[at], arguments, path, sizeof path);
    long result;
    if (!is_meant(&calls[at], arguments, path)) {
        result = performed(number, arguments);
    } else {
        // Calls of one name share the count of the first.
        size_t first = 0;
        while (strcmp(calls[first].name, calls[at].name)) first++;
        long count = __atomic_add_fetch(&counts[first], 1, __ATOMIC_RELAXED);
        if (nth && (count == nth || (lasts && count > nth))) {
            tell(calls[at].name, path);
            result = failed(&calls[at], arguments);
        } else {
            result = performed(number, arguments);
        }
    }
    registers[RESULT] = result;
}

static void trap(const char *name) {
    struct sock_filter filter[16 + 2 * CALLS], *next = filter;
    unsigned long after = (unsigned long)faults_after;
    const unsigned ip = offsetof(struct seccomp_data, instruction_pointer);
    const unsigned fd_of_map = offsetof(struct seccomp_data, args[4]);
#define ADD(...) *next++ = (struct sock_filter)__VA_ARGS__
    ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)));
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 0, 4));
    ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip));
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)after, 0, 3));
    ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, ip + 4));
    ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)(after >> 32), 0, 1));
    ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
    for (size_t at = 0; at < CALLS; at++) {
        if (strcmp(name, "all") && strcmp(name, calls[at].name)) continue;
        if (calls[at].number == SYS_mmap) {
            // Memory of no file is not meant: it is what the program's own stack is made of.
            ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mmap, 0, 4));
            ADD(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, fd_of_map));
            ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0xffffffff, 0, 1));
            ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
            ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
        } else {
            ADD(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[at].number, 0, 1));
            ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
        }
    }
    ADD(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    struct sock_fprog program = {.len = next - filter, .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        tell("refused", strerror(errno));
        _exit(99);
    }
}

static long number(const char *name) {
    const char *text = getenv(name);
    return text ? atol(text) : 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *call = getenv("CUPOLA_FAULT_CALL"), *log = getenv("CUPOLA_FAULT_LOG");
    if (!call || !log) return;
    journal = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    nth = number("CUPOLA_FAULT_NTH");
    lasts = number("CUPOLA_FAULT_LASTS");
    error_number = number("CUPOLA_FAULT_ERROR");
    folder = getenv("CUPOLA_FAULT_IN");
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSYS, &action, NULL);
    trap(call);
}

__attribute__((destructor)) static void end(void) {
    if (journal < 0 || nth) return;
    for (size_t at = 0; at < CALLS; at++) {
        char text[32];
        snprintf(text, sizeof text, "%ld", counts[at]);
        if (counts[at]) tell(calls[at].name, text);
    }
}
