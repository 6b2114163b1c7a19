//! How the values that programs read are written down: a table, in which the fields of each type are
//! the keys of its JSON and say what they hold.

/// Makes a type of each entry.
macro_rules! shapes {
    ($($(#[$about:meta])* $name:ident $(<$life:lifetime>)? {
        $($(#[$more:meta])* $field:ident: $of:ty),* $(,)?
    })*) => {$(
        $(#[$about])*
        #[derive(Clone, Debug, serde::Serialize)]
        pub struct $name $(<$life>)? {
            $(#[doc = concat!("Its `", stringify!($field), "`.")] $(#[$more])* pub $field: $of,)*
        }
    )*};
}

pub(crate) use shapes;
