// A network of a process's own, in which a test may pull the cable: a namespace with nothing but loopback.
#pragma once

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

// This process, and those it forks from now on, are alone in a network that is up. False where the system forbids it.
inline bool own_network() { return unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0; }

// Sets the loopback interface up or down: down, nothing arrives anywhere any more, and nobody is notified.
inline bool set_loopback(bool up) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo");
  request.ifr_flags = short(up ? IFF_UP | IFF_RUNNING : 0);
  const bool done = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  close(fd);
  return done;
}

// Gives loopback a further address. What is sent to others of its network (/24) leads nowhere, without any answer.
inline bool add_address(const char* address) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  std::strcpy(request.ifr_name, "lo:1");
  auto* const in = reinterpret_cast<sockaddr_in*>(&request.ifr_addr);
  in->sin_family = AF_INET;
  inet_pton(AF_INET, address, &in->sin_addr);
  bool done = ioctl(fd, SIOCSIFADDR, &request) == 0;
  inet_pton(AF_INET, "255.255.255.0", &in->sin_addr);
  done = done && ioctl(fd, SIOCSIFNETMASK, &request) == 0;
  close(fd);
  return done;
}
