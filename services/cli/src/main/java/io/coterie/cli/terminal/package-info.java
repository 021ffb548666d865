/**
 * The person at the terminal: questions, results, failures in one line, and the spelling of values.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.cli.terminal;
