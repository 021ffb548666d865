/** Intents: their fields, the approval by a person, and signing them offline. */
@org.jspecify.annotations.NullMarked
package io.coterie.cli.intent;
