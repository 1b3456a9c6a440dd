// Darwin's type, for IOKit's declarations.
#pragma once
typedef int kern_return_t;
#define KERN_SUCCESS 0
