/**
 * Every reason for which a call can fail, as data: one list for statuses, logs, metrics and docs.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.platform.error;
