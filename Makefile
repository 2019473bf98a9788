# sb: one makefile, not recursive, no configure. Adding a command is adding a
# file: cmd/sb-x.c, doc/man1/sb-x.1, t/sb-x.bats.
#
#   make            build everything into build/
#   make run        install what is missing, build, show the main job
#   make check      install what is missing, build, run every test
#   make real       /usr, a kernel source, 100 000 files, files of 1 GiB
#   make lint       warnings as errors, format, shellcheck, mandoc, order
#   make bench      figures beside their budgets, measured here
#   make install    PREFIX= DESTDIR=
#   make SAN=1 …    the same with sanitizers, in build-san/

-include config.mk

PREFIX ?= /usr/local
DESTDIR ?=
CC ?= cc
CFLAGS ?= -O2 -g
WORKSPACE ?= .

WARN = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wold-style-definition -Wvla -Walloca -Wwrite-strings -Wcast-qual \
	-Wformat=2 -Wundef -Wpointer-arith -Wimplicit-fallthrough \
	-Wswitch-enum -Wnull-dereference -Wunused-result -fno-common
VERSION = 0.1.0
OUR_CFLAGS = -std=c11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Ilib -DSB_VERSION='"$(VERSION)"' $(WARN)
HARDEN = -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong \
	-fstack-clash-protection -fPIE
LDHARDEN = -pie -Wl,-z,relro,-z,now
# Archives, so that a command starts without resolving a large library.
LIBS = -l:libbsd.a -l:libmd.a -l:libcrypto.a -l:libz.a -l:libvterm.a \
	-l:libyaml.a

ifdef SAN
B = build-san
CFLAGS = -O1 -g -fno-omit-frame-pointer
HARDEN = -fsanitize=address,undefined -fno-sanitize-recover=all -fPIE
LDHARDEN = -pie -fsanitize=address,undefined
else
B = build
endif
ifdef WERROR
OUR_CFLAGS += -Werror
endif
ifdef ANALYZE
OUR_CFLAGS += -fanalyzer
endif
ifndef V
Q = @
endif

CMDS := $(sort $(patsubst cmd/%.c,$(B)/bin/%,$(wildcard cmd/*.c)))
SHS := $(sort $(patsubst sh/%,$(B)/bin/%,$(wildcard sh/*)))
UNITS := $(sort $(patsubst t/unit/%.c,$(B)/t/%,$(wildcard t/unit/*.c)))
HELPERS := $(sort $(patsubst t/helper/%.c,$(B)/t/%,$(wildcard t/helper/*.c)))
LIBOBJ := $(patsubst %,$(B)/lib/%.o,$(shell cat lib/ORDER))
CLIS := $(if $(wildcard cmd/sandbox-cli.c),$(patsubst %,$(B)/bin/sandbox-%-cli,\
	manager runtime observability))
OPS := $(sort $(wildcard svc/ops/*.json svc/ops/*/*.json))
SVCS := $(sort $(wildcard svc/*.sh svc/*/run svc/*/finish svc/*/notification-fd))
MCPS := $(sort $(wildcard mcp/*))
COMPLETIONS := $(sort $(wildcard completion/*/*/*))
MAN := $(sort $(wildcard doc/man*/*.[157]))

all: $(CMDS) $(SHS) $(CLIS) $(B)/share/sb

$(B)/lib/%.o: lib/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(OUR_CFLAGS) $(HARDEN) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/libsb.a: $(LIBOBJ)
	$(Q)rm -f $@ && ar rcsD $@ $^

$(B)/cmd/%.o: cmd/%.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(OUR_CFLAGS) $(HARDEN) $(CFLAGS) -MMD -MP -c -o $@ $<

$(B)/bin/%: $(B)/cmd/%.o $(B)/libsb.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(LDHARDEN) $(LDFLAGS) -o $@ $< $(B)/libsb.a $(LIBS)

$(B)/bin/%: sh/%
	@mkdir -p $(@D)
	$(Q)install -m 755 $< $@

# One program by three names, which looks for operations beside its directory.
$(CLIS): $(B)/bin/sandbox-cli
	$(Q)ln -sf sandbox-cli $@

$(B)/share/sb:
	@mkdir -p $(@D)
	$(Q)ln -sfnr svc $@

$(B)/t/%: t/unit/%.c $(B)/libsb.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(OUR_CFLAGS) $(HARDEN) $(CFLAGS) $(LDHARDEN) -MMD -MP -o $@ \
		$< $(B)/libsb.a $(LIBS)

$(B)/t/%: t/helper/%.c $(B)/libsb.a
	@mkdir -p $(@D)
	$(Q)$(CC) $(OUR_CFLAGS) $(HARDEN) $(CFLAGS) $(LDHARDEN) -MMD -MP -o $@ \
		$< $(B)/libsb.a $(LIBS)

run:
	@t/deps run
	@$(MAKE) --no-print-directory all
	@PATH="$(CURDIR)/$(B)/bin:$$PATH" sb-tour '$(WORKSPACE)'

tests: all $(UNITS) $(HELPERS)

# FILES= names some of the tests.
check:
	@t/deps check $(if $(FILES),$(findstring mcp,$(FILES)),mcp)
	@$(MAKE) --no-print-directory tests
	@t/run $(B) $(FILES)

# Each header compiles alone.
headers:
	$(Q)for h in lib/*.h; do \
		$(CC) $(OUR_CFLAGS) -fsyntax-only -x c $$h || exit 1; done

# Each source once more with lib/banned.h in front.
banned:
	$(Q)for c in lib/*.c cmd/*.c; do \
		case $$c in lib/err.c|lib/spawn.c) may=-DSB_MAY_SIGNAL;; *) may=;; esac; \
		$(CC) $(OUR_CFLAGS) $$may -include lib/banned.h \
			-fsyntax-only $$c || exit 1; done

lint:
	@t/deps lint
	@t/lint

bench:
	@t/deps bench mcp
	@$(MAKE) --no-print-directory all
	@t/bench $(B)

# Trees of the size that people have: minutes, and up to 20 GiB.
real:
	@t/deps check
	@$(MAKE) --no-print-directory tests
	@t/real $(B)

install: all
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(CMDS) $(SHS) $(DESTDIR)$(PREFIX)/bin
	for c in $(notdir $(CLIS)); do \
		ln -sf sandbox-cli $(DESTDIR)$(PREFIX)/bin/$$c || exit 1; \
		for s in bash-completion/completions/ zsh/site-functions/_; do \
			f=$(DESTDIR)$(PREFIX)/share/$$s$$c; s=$${s%%/*}; \
			install -d $${f%/*} && $(B)/bin/$$c \
				--completion $${s%-completion} >$$f || exit 1; \
		done; done
	for f in $(COMPLETIONS); do \
		install -D -m 644 $$f $(DESTDIR)$(PREFIX)/share/$${f#completion/} || exit 1; done
	for f in $(OPS); do \
		install -D -m 644 $$f $(DESTDIR)$(PREFIX)/share/sb/$${f#svc/} || exit 1; done
	for f in $(SVCS); do \
		m=755; [ -x $$f ] || m=644; \
		install -D -m $$m $$f $(DESTDIR)$(PREFIX)/share/sb/$${f#svc/} || exit 1; done
	for f in $(MCPS); do \
		m=644; [ ! -x $$f ] || m=755; \
		install -D -m $$m $$f $(DESTDIR)$(PREFIX)/share/sb/$$f || exit 1; done
	for m in $(MAN); do \
		d=$(DESTDIR)$(PREFIX)/share/man/man$${m##*.}; \
		install -d $$d && install -m 644 $$m $$d || exit 1; done
	for c in $(notdir $(CLIS)); do \
		ln -sf sandbox-cli.1 \
			$(DESTDIR)$(PREFIX)/share/man/man1/$$c.1 || exit 1; done

clean:
	rm -rf build build-san

-include $(wildcard $(B)/lib/*.d $(B)/cmd/*.d $(B)/t/*.d)

.PHONY: all run tests check real headers banned lint bench install clean
.SECONDARY:
