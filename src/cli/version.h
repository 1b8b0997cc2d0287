/* version.h - the version of this program and library; the Makefile reads it too. */
#pragma once

#define DOHLE_VERSION       "0.1.0"
#define DOHLE_KAFKA_VERSION "4.4.0" /* The release whose protocol the schemas carry. */
