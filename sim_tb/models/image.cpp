#include "image.h"

vip::MappedFile vip::g_image;

int32_t vip_image_open(const char* path) { return vip::g_image.open(path) ? 0 : -1; }
