/** Where a party's data key comes from at start: the one secret that opens everything else. */
@org.jspecify.annotations.NullMarked
package io.coterie.platform.unseal;
