/** The check of everything between this machine and the installation. */
@org.jspecify.annotations.NullMarked
package io.coterie.cli.doctor;
