/** The installation as this client knows it: its settings, certificates, keys and trust file. */
@org.jspecify.annotations.NullMarked
package io.coterie.cli.profile;
