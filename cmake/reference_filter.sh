#!/bin/sh
# Filter for Doxygen: makes documentation comments of the plain comments of a header.
#   // text          /// text          int a;  // text    int a;  ///< text
# Doxygen 1.9 does not read nested inline namespaces, and takes @ for a command.
#   /* text */       /** text */       int a;  /* text    int a;  /**< text
sed -E \
  -e 's|^namespace kolo::inline v0|namespace kolo|' \
  -e 's|@|\\@|g' \
  -e 's|^( *)// ?|\1/// |' \
  -e 's|^( *)/\* |\1/** |' \
  -e 's|([;,}]) +// |\1  ///< |' \
  -e 's|([;,}A-Z0-9_]) +/\* |\1 /**< |' "$1"
