// c-ares for DNSClient, and what wakes the thread that drives it.
#pragma once
#include <ares.h>
#include <ares_dns.h>
#include <arpa/nameser.h>
#include <sys/eventfd.h>
