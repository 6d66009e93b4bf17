// c-ares for DNSClient.
#pragma once
#include <ares.h>
#include <ares_dns.h>
#include <arpa/nameser.h>
