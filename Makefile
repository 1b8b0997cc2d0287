# Dohle. `./dev` installs what is missing and calls these targets; they work alone too.
#
#   make build     build/dohle, build/libdohle-wire.a
#   make test      unit tests (address and undefined sanitizers)
#   make sim ARGS="FIRST COUNT"   seeds of the simulator
#   make tidy      the rules that a program can check
#   make install   program, library, header, manual, completions under PREFIX (/usr/local), below DESTDIR
#   make B=other   build into another folder
#   make CC=clang  the other compiler
#   make SAN=1     sanitizers in everything (use with B=); TSAN=1: the thread sanitizer instead

B      ?= build
ifeq ($(origin CC),default)
CC      = gcc
endif
# The same family, so that both kinds of object link under sanitizers.
ifeq ($(origin CXX),default)
CXX     = $(if $(findstring clang,$(CC)),$(subst clang,clang++,$(CC)),g++)
endif
AR     ?= ar
# For the generators, which run here also when $(CC) is a cross compiler.
HOSTCC ?= $(CC)
PREFIX ?= /usr/local

# gnu17: C17 with the attributes and statement forms of gcc and clang.
CSTD     = -std=gnu17
# What the compiler can see, it must not pass over. Unused parameters are normal for callbacks.
WARN     = -Wall -Wextra -Wno-unused-parameter -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
           -Wpointer-arith -Wcast-qual -Wundef -Wvla -Wimplicit-fallthrough
ifdef STRICT
WARN    += -Werror
endif
# -fno-plt and no PIC: one static-style program. -g costs nothing at run time; `strip` removes it.
OPT     ?= -O2 -g
# The isa-l CRC and OpenSSL choose by cpuid at run time, so the baseline stays generic.
CPPFLAGS += -D_GNU_SOURCE -Isrc -I$(B)
# sim/ includes its own headers by folder too.
$(B)/sim/%.o: CPPFLAGS += -I.
PACKAGES = isa-l libzstd liblz4 snappy re2 zlib openssl json-c libmicrohttpd rdkafka libpcap
# What the server needs is linked in, but libc and isa-l; what only a command or the HTTP listener
# needs (librdkafka, libpcap, libmicrohttpd) is loaded by it: docs/decisions/0006-linking.md.
# snappy is C++ inside. Where there are no static libraries: make LIBS='-lisal -lzstd ...'.
LIBS    ?= -Wl,-Bstatic -lzstd -llz4 -lsnappy -lre2 -lstdc++ -lz -ljson-c -lcrypto -Wl,-Bdynamic -lisal -lpthread -ldl
# STATIC=1 (use with B=): one file that needs no library. Debian has no static isa-l, so crc_plain.c
# stands in for it. It loads no library: no health by HTTP, no commands that need librdkafka or libpcap.
ifdef STATIC
CPPFLAGS += -DDOHLE_STATIC
LIBS     = -static -lzstd -llz4 -lsnappy -lre2 -lstdc++ -lz -ljson-c -lcrypto -lpthread -ldl
NOT_LINKED = src/record/crc.c
else
NOT_LINKED = src/record/crc_plain.c
endif
ifdef SAN
SANFLAGS = -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -DDOHLE_SLOW_ASSERTS
endif
ifdef TSAN
SANFLAGS = -fsanitize=thread -fno-omit-frame-pointer
endif
ifdef FUZZ
SANFLAGS += -fsanitize=fuzzer-no-link
endif
# A section for each function and object, for the linker to leave out or to lay together.
SECTIONS = -ffunction-sections -fdata-sections
CFLAGS  += $(CSTD) $(WARN) $(OPT) $(SECTIONS) $(SANFLAGS)
# Nothing is thrown and nothing asks for a type at run time.
CXXFLAGS += -std=c++17 -Wall -Wextra $(if $(STRICT),-Werror) $(OPT) $(SECTIONS) $(SANFLAGS) -fno-exceptions -fno-rtti
# Packed relocations: a pointer in a table costs a bit of file instead of 24 bytes. What nobody calls
# is left out. Symbols are bound at the start: the loader and the libraries' names need not stay mapped.
LDFLAGS += $(SANFLAGS) -static-libgcc -Wl,-z,pack-relative-relocs -Wl,-z,now -Wl,--gc-sections

FOLDERS  = base wire core record text sys io log net broker console check
SCHEMAS  = $(wildcard schema/messages/*.json)
SOURCES  = $(filter-out %_test.c $(NOT_LINKED),$(foreach f,$(FOLDERS),$(wildcard src/$(f)/*.c)))
# The one piece of C++: a shim around RE2.
SHIMS    = $(wildcard src/*/*.cc)
CLI      = $(filter-out %_test.c,$(wildcard src/cli/*.c))
SIM      = $(filter-out %_test.c sim/seeds.c,$(wildcard sim/*.c))
TESTS    = $(foreach f,$(FOLDERS) cli,$(wildcard src/$(f)/*_test.c)) $(wildcard sim/*_test.c)

GEN_STAMP = $(B)/gen.stamp
TEST_BINS = $(TESTS:%.c=$(B)/%)

.PHONY: all build test tidy clean run print-libs sim
all: build
build: $(B)/dohle $(B)/libdohle-wire.a

# ---- generated C: never committed --------------------------------------------------------------
# schemac reads schema/ and writes $(B)/gen/*.h (one per message) and $(B)/gen/*.c (tables).
$(B)/schemac: $(wildcard tools/schemac*.c tools/schemac*.h) tools/output.c tools/output.h
	@mkdir -p $(@D)
	$(HOSTCC) $(CSTD) $(WARN) -O1 -g -D_GNU_SOURCE -Itools -Isrc $(filter %.c,$^) -o $@ -ljson-c

$(B)/metricc: tools/metricc.c tools/output.c tools/output.h
	@mkdir -p $(@D)
	$(HOSTCC) $(CSTD) $(WARN) -O1 -g -D_GNU_SOURCE $(filter %.c,$^) -o $@ -ljson-c

$(B)/configc: tools/configc.c tools/output.c tools/output.h
	@mkdir -p $(@D)
	$(HOSTCC) $(CSTD) $(WARN) -O1 -g -D_GNU_SOURCE $(filter %.c,$^) -o $@ -ljson-c

# The stamp is a piece of makefile that names the generated sources: make reads it, and makes it
# first if it is old. A generated file that would not change is not touched.
$(GEN_STAMP): $(B)/schemac $(B)/metricc $(B)/configc $(SCHEMAS) $(wildcard schema/*.json)
	@mkdir -p $(B)/gen
	$(B)/schemac schema $(B)/gen
	$(B)/metricc schema $(B)/gen
	$(B)/configc schema $(B)/gen
	@echo "GEN_C =" $(B)/gen/*.c > $@

ifneq ($(MAKECMDGOALS),clean)
-include $(GEN_STAMP)
endif

$(B)/libgen.a: $(GEN_C:%.c=%.o)
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/gen/%.o: $(B)/gen/%.c
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# ---- objects, libraries, the program -----------------------------------------------------------
$(B)/%.o: %.c | $(GEN_STAMP)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/%.o: %.cc | $(GEN_STAMP)
	@mkdir -p $(@D)
	$(CXX) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c $< -o $@

# It holds these files as they are.
$(B)/src/text/page_assets.o: web/wire.css web/wire.js

$(B)/libdohle.a: $(SOURCES:%.c=$(B)/%.o) $(SHIMS:%.cc=$(B)/%.o)
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/libdohle-wire.a: $(B)/src/sys/memory.o $(filter $(B)/src/base/% $(B)/src/wire/% $(B)/src/record/% $(B)/src/text/%,$(SOURCES:%.c=$(B)/%.o)) $(B)/libgen.a
	@rm -f $@
	$(AR) rcs $@ $(filter %.o,$^) $(GEN_C:%.c=%.o)

$(B)/libsim.a: $(SIM:%.c=$(B)/%.o)
	@rm -f $@
	$(AR) rcs $@ $^

# The commands without main(), so that their tests can link them.
$(B)/libcli.a: $(filter-out $(B)/src/cli/main.o,$(CLI:%.c=$(B)/%.o))
	@rm -f $@
	$(AR) rcs $@ $^

LINK_ALL = -Wl,--start-group $(B)/libdohle.a $(B)/libgen.a -Wl,--end-group

# What src/layout.txt names comes first, in its order: the functions, then their strings. (INSERT: it
# adds to the linker's own script.)
$(B)/layout.ld: src/layout.txt
	@mkdir -p $(@D)
	@for kind in text rodata; do \
		echo "SECTIONS { .$${kind}_near : {"; \
		sed -n "/^[^#]/s/.*/*(.$$kind.& .$$kind.&.*)/p" $<; \
		echo "} } INSERT BEFORE .$$kind;"; done > $@

$(B)/dohle: $(CLI:%.c=$(B)/%.o) $(B)/libdohle.a $(B)/libgen.a $(B)/layout.ld
	$(CC) $(LDFLAGS) -Wl,-T,$(B)/layout.ld $(CLI:%.c=$(B)/%.o) $(LINK_ALL) $(LIBS) -o $@

# ---- the simulator: make sim ARGS="FIRST COUNT [--world=controller] [--trace] [--twice]" -----------
$(B)/sim/seeds: $(B)/sim/seeds.o $(B)/libsim.a $(B)/libdohle.a $(B)/libgen.a
	$(CC) $(LDFLAGS) $< -Wl,--start-group $(B)/libsim.a $(B)/libdohle.a $(B)/libgen.a -Wl,--end-group $(LIBS) -o $@

sim: $(B)/sim/seeds
	@$< $(ARGS)

# ---- tests: src/x/y_test.c is a cmocka program over libdohle.a -----------------------------------
$(TEST_BINS): $(B)/%: $(B)/%.o $(B)/libdohle.a $(B)/libgen.a $(B)/libsim.a $(B)/libcli.a
	$(CC) $(LDFLAGS) $< -Wl,--start-group $(B)/libcli.a $(B)/libsim.a $(B)/libdohle.a $(B)/libgen.a -Wl,--end-group $(LIBS) -lcmocka -o $@

# One folder's tests: make test-log
test-%: $(TEST_BINS)
	@set -e; for t in $(filter $(B)/src/$*/% $(B)/$*/%,$(TEST_BINS)); do echo "== $$t"; $$t; done

unit: $(TEST_BINS)
	@set -e; for t in $^; do echo "== $$t"; $$t; done

# ---- benchmarks: bench/x.c is a program over the libraries and bench/lib/; make bench-x builds build/bench/x
$(B)/bench/%.o: CPPFLAGS += -I.
$(B)/libbench.a: $(patsubst %.c,$(B)/%.o,$(wildcard bench/lib/*.c))
	@rm -f $@
	$(AR) rcs $@ $^

$(B)/bench/%: $(B)/bench/%.o $(B)/libbench.a $(B)/libdohle.a $(B)/libgen.a
	$(CC) $(LDFLAGS) $< $(B)/libbench.a $(LINK_ALL) $(LIBS) -o $@

bench-%: $(B)/bench/% ;
.PRECIOUS: $(B)/bench/%

# ---- the library, for others -----------------------------------------------------------------------
# The public header as one file, with the structs of all messages.
$(B)/include/dohle-wire.h: include/dohle-wire.h tools/flatten $(wildcard src/base/*.h src/wire/*.h src/text/*.h) $(B)/libgen.a
	@mkdir -p $(@D)
	FLATTEN_PATH=src:$(B) tools/flatten $< $(filter-out %/config_table.h %/metrics.h %/runs.h,$(wildcard $(B)/gen/*.h)) > $@.new
	@mv $@.new $@

VERSION = $(shell sed -n 's/^\#define DOHLE_VERSION  *"\(.*\)".*/\1/p' src/cli/version.h)

.PHONY: install
install: build $(B)/include/dohle-wire.h
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
		$(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 $(B)/dohle $(DESTDIR)$(PREFIX)/bin/
	install -m 644 $(B)/include/dohle-wire.h $(DESTDIR)$(PREFIX)/include/
	install -m 644 $(B)/libdohle-wire.a $(DESTDIR)$(PREFIX)/lib/
	sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' include/dohle-wire.pc.in > $(DESTDIR)$(PREFIX)/lib/pkgconfig/dohle-wire.pc
	$(B)/dohle completions bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/dohle
	$(B)/dohle completions zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_dohle
	$(B)/dohle man > $(DESTDIR)$(PREFIX)/share/man/man1/dohle.1

# ---- fuzzing: test/fuzz/x.c is a target of libFuzzer; test/fuzz/run builds (clang, FUZZ=1) and runs them
LINK_FUZZ = -Wl,--start-group $(B)/libcli.a $(B)/libdohle.a $(B)/libgen.a -Wl,--end-group
$(B)/fuzz/%: test/fuzz/%.c $(B)/libcli.a $(B)/libdohle.a $(B)/libgen.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -fsanitize=fuzzer $(LDFLAGS) $< $(LINK_FUZZ) $(LIBS) -o $@

# The same targets without libFuzzer, for ./dev test.
$(B)/replay/%: test/fuzz/%.c test/fuzz/replay/replay.c $(B)/libcli.a $(B)/libdohle.a $(B)/libgen.a
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) $(filter %.c,$^) $(LINK_FUZZ) $(LIBS) -o $@

.PHONY: fuzz
fuzz:
	@test/fuzz/run $(ARGS)

# ---- the rules that a program can check ---------------------------------------------------------
tidy: build
	@tools/tidy $(B) --lint

# What a program over libdohle.a is linked with, for suites that build one of their own.
print-libs:
	@echo $(LIBS)

clean:
	rm -rf $(B)

-include $(shell find $(B) -type f -name '*.d' 2>/dev/null)
