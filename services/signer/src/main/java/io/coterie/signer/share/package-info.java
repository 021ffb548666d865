/** The shares of keys: how they are stored, agreed on, made active and checked against a plan. */
@NullMarked
package io.coterie.signer.share;

import org.jspecify.annotations.NullMarked;
