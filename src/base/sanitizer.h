/* Whether AddressSanitizer watches this program's memory: GCC and Clang say so in ways of their own. */
#ifndef SB_BASE_SANITIZER_H
#define SB_BASE_SANITIZER_H

#if defined(__SANITIZE_ADDRESS__)
#define SB_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SB_ADDRESS_SANITIZER 1
#endif
#endif
#ifndef SB_ADDRESS_SANITIZER
#define SB_ADDRESS_SANITIZER 0
#endif

#endif
