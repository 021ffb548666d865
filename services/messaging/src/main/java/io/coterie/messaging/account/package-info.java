/** Accounts, their devices and credentials, and the one-time enrolments that create them. */
@org.jspecify.annotations.NullMarked
package io.coterie.messaging.account;
