/** The life cycle that all requests share: one request id has one result. */
@org.jspecify.annotations.NullMarked
package io.coterie.coordinator.custody.request;
