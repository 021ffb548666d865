/**
 * The trust file of an installation: its name, its members with their keys, and the requesters
 * whose keys its clients believe. Root keys sign each of its versions. Members and clients read the
 * same file, and nothing in it is ever learned from the network.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.trust;
