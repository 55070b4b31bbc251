# viewer.mk: the page that shows reports, as bytes: its style, and its modules one after the other.
# SPDX-License-Identifier: Apache-2.0
viewer = $(sort $(wildcard tools/viewer/*.$(1)))
$(B)/gen/viewer.h: tools/viewer $(call viewer,css) $(call viewer,js)
	@mkdir -p $(@D)
	@{ for of in style:css script:js; do \
	  echo "static const unsigned char viewer_$${of%:*}[] = {"; \
	  cat tools/viewer/*.$${of#*:} | od -An -v -tu1 | sed 's/  */,/g;s/^,//;s/$$/,/'; \
	  echo '};'; done; } > $@
$(B)/src/io/page.o: $(B)/gen/viewer.h
$(B)/src/io/page.o: CFLAGS_ALL += -I$(B)/gen

# the checker that `validate export --kit` writes
$(B)/gen/kit.h: tools/python/kit/check.py tools/python/kit/example.py
	@mkdir -p $(@D)
	@{ for of in check example; do \
	  echo "static const unsigned char kit_$$of[] = {"; \
	  od -An -v -tu1 tools/python/kit/$$of.py | sed 's/  */,/g;s/^,//;s/$$/,/'; \
	  echo '};'; done; } > $@
$(B)/src/cli/validate/validate_cases.o: $(B)/gen/kit.h
$(B)/src/cli/validate/validate_cases.o: CFLAGS_ALL += -I$(B)/gen
