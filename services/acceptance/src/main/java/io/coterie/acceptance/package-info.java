/** The whole system as a DSL: the demo, the benchmark and the end-to-end tests all start here. */
@org.jspecify.annotations.NullMarked
package io.coterie.acceptance;
