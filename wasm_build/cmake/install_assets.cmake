# cmake -DFROM=DIR -DTO=DIR "-DFILES=a;b" -P install_assets.cmake
# Puts files that belong together in place: copied under temporary names first, then renamed one right after the other.
foreach(name IN LISTS FILES)
  configure_file(${FROM}/${name} ${TO}/.${name}.new COPYONLY)
  file(TOUCH ${TO}/.${name}.new) # Ninja compares times, and a copy keeps that of its source
endforeach()
foreach(name IN LISTS FILES)
  file(RENAME ${TO}/.${name}.new ${TO}/${name})
endforeach()
